__kernel void E_2_4(__global float* data0, __global ushort* data1) {
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  ushort4 val0 = *((__global ushort4*)((data1+alu0)));
  uint alu1 = ((uint)val0.x);
  uint alu2 = (alu1&32767u);
  uint alu3 = (alu2<<13u);
  uint alu4 = ((uint)val0.y);
  uint alu5 = (alu4&32767u);
  uint alu6 = (alu5<<13u);
  uint alu7 = ((uint)val0.z);
  uint alu8 = (alu7&32767u);
  uint alu9 = (alu8<<13u);
  uint alu10 = ((uint)val0.w);
  uint alu11 = (alu10&32767u);
  uint alu12 = (alu11<<13u);
  *((__global float4*)((data0+alu0))) = (float4)((as_float((((alu2<31744u)?as_uint((as_float(alu3)*5.192297e+33f)):(alu3|2139095040u))|((alu1>>15u)<<31u)))*3.0f),(as_float((((alu5<31744u)?as_uint((as_float(alu6)*5.192297e+33f)):(alu6|2139095040u))|((alu4>>15u)<<31u)))*3.0f),(as_float((((alu8<31744u)?as_uint((as_float(alu9)*5.192297e+33f)):(alu9|2139095040u))|((alu7>>15u)<<31u)))*3.0f),(as_float((((alu11<31744u)?as_uint((as_float(alu12)*5.192297e+33f)):(alu12|2139095040u))|((alu10>>15u)<<31u)))*3.0f));
}
