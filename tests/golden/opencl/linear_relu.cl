__kernel void r_4_8_8(__global float* data0, __global float* data1, __global float* data2, __global float* data3) {
  int gidx0 = get_group_id(0); /* 4 */
  int gidx1 = get_group_id(1); /* 8 */
  float acc0 = 0.0f;
  int alu0 = (gidx0<<3);
  for (int ridx0 = 0; ridx0 < 8; ridx0++) {
    float val0 = *(data1+(alu0+ridx0));
    float val1 = *(data2+(gidx1+(ridx0<<3)));
    acc0 = fma(val0,val1,acc0);
  }
  float val2 = *(data3+gidx1);
  float alu1 = (acc0+val2);
  *(data0+(alu0+gidx1)) = (0.0f>alu1?0.0f:alu1);
}
