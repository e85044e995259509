__kernel void E_16(__global float* data0, __global float* data1, __global float* data2) {
  int gidx0 = get_group_id(0); /* 16 */
  float val0 = *(data1+gidx0);
  float val1 = *(data2+gidx0);
  *(data0+gidx0) = (val0+val1);
}
