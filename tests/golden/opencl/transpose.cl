__kernel void E_4_3_2(__global float* data0, __global float* data1) {
  int gidx0 = get_group_id(0); /* 4 */
  int gidx1 = get_group_id(1); /* 3 */
  int lidx0 = get_local_id(0); /* 2 */
  float val0 = *(data1+((gidx1<<3)+(lidx0<<2)+gidx0));
  *(data0+((gidx0*6)+(gidx1<<1)+lidx0)) = val0;
}
