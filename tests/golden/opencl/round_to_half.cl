__kernel void E_2_4(__global ushort* data0, __global float* data1) {
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((__global float4*)((data1+alu0)));
  uint alu1 = as_uint((val0.x*3.0f));
  uint alu2 = (alu1&2147483647u);
  uint alu3 = ((alu2<947912704u)?(as_uint((as_float(alu2)+0.5f))+3238002688u):((((alu2>>13u)&1u)+alu2+3355447295u)>>13u));
  uint alu4 = as_uint((val0.y*3.0f));
  uint alu5 = (alu4&2147483647u);
  uint alu6 = ((alu5<947912704u)?(as_uint((as_float(alu5)+0.5f))+3238002688u):((((alu5>>13u)&1u)+alu5+3355447295u)>>13u));
  uint alu7 = as_uint((val0.z*3.0f));
  uint alu8 = (alu7&2147483647u);
  uint alu9 = ((alu8<947912704u)?(as_uint((as_float(alu8)+0.5f))+3238002688u):((((alu8>>13u)&1u)+alu8+3355447295u)>>13u));
  uint alu10 = as_uint((val0.w*3.0f));
  uint alu11 = (alu10&2147483647u);
  uint alu12 = ((alu11<947912704u)?(as_uint((as_float(alu11)+0.5f))+3238002688u):((((alu11>>13u)&1u)+alu11+3355447295u)>>13u));
  *((__global ushort4*)((data0+alu0))) = (ushort4)(((ushort)(((2139095040u<alu2)?32256u:((alu3<31744u)?alu3:31744u))|((alu1>>31u)<<15u))),((ushort)(((2139095040u<alu5)?32256u:((alu6<31744u)?alu6:31744u))|((alu4>>31u)<<15u))),((ushort)(((2139095040u<alu8)?32256u:((alu9<31744u)?alu9:31744u))|((alu7>>31u)<<15u))),((ushort)(((2139095040u<alu11)?32256u:((alu12<31744u)?alu12:31744u))|((alu10>>31u)<<15u))));
}
