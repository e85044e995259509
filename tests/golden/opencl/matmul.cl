__kernel void r_4_2_8_4(__global float* data0, __global float* data1, __global float* data2) {
  int gidx0 = get_group_id(0); /* 4 */
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (gidx0<<3);
  int alu1 = (lidx0<<2);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int ridx0 = 0; ridx0 < 8; ridx0++) {
    float val0 = *(data1+(alu0+ridx0));
    float4 val1 = *((__global float4*)((data2+(alu1+(ridx0<<3)))));
    acc0 = fma(val0,val1.x,acc0);
    acc1 = fma(val0,val1.y,acc1);
    acc2 = fma(val0,val1.z,acc2);
    acc3 = fma(val0,val1.w,acc3);
  }
  *((__global float4*)((data0+(alu0+alu1)))) = (float4)(acc0,acc1,acc2,acc3);
}
