__kernel void E_2_4(__global float* data0, __global float* data1) {
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((__global float4*)((data1+alu0)));
  float alu1 = (exp2((((val0.x*2.0f)+1.0f)*1.442695f))-val0.x);
  float alu2 = (exp2((((val0.y*2.0f)+1.0f)*1.442695f))-val0.y);
  float alu3 = (exp2((((val0.z*2.0f)+1.0f)*1.442695f))-val0.z);
  float alu4 = (exp2((((val0.w*2.0f)+1.0f)*1.442695f))-val0.w);
  *((__global float4*)((data0+alu0))) = (float4)((0.0f>alu1?0.0f:alu1),(0.0f>alu2?0.0f:alu2),(0.0f>alu3?0.0f:alu3),(0.0f>alu4?0.0f:alu4));
}
