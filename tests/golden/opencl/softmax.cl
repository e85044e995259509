__kernel void r_4_16_16_16(__global float* data0, __global float* data1) {
  int gidx0 = get_group_id(0); /* 4 */
  int alu0 = (gidx0<<4);
  float acc0 = -INFINITY;
  for (int ridx1 = 0; ridx1 < 16; ridx1++) {
    float val0 = *(data1+(alu0+ridx1));
    acc0 = (acc0!=acc0||acc0>val0?acc0:val0);
  }
  float acc1 = 0.0f;
  for (int ridx2 = 0; ridx2 < 16; ridx2++) {
    float val1 = *(data1+(alu0+ridx2));
    acc1 = (acc1+exp2(((val1-acc0)*1.442695f)));
  }
  for (int ridx0 = 0; ridx0 < 16; ridx0++) {
    int alu1 = (alu0+ridx0);
    float val2 = *(data1+alu1);
    *(data0+alu1) = (exp2(((val2-acc0)*1.442695f))/acc1);
  }
}
