__kernel void E_4(__global int* data0, __global int* data1, __global int* data2) {
  int gidx0 = get_group_id(0); /* 4 */
  int val0 = *(data1+gidx0);
  int val1 = *(data2+gidx0);
  int alu0 = (val1==0?0:val1==-1?(-val0):(val0/val1));
  int alu1 = (val0-(alu0*val1));
  *(data0+gidx0) = (alu0-((int)(((alu1!=0)&((alu1<0)^(val1<0)))&(val1!=0))));
}
