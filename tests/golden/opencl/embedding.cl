__kernel void E_3_2_4(__global float* data0, __global int* data1, __global float* data2) {
  int gidx0 = get_group_id(0); /* 3 */
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  bool alu2 = ((alu1<10)&((-alu1)<1));
  int alu3 = ((alu1<<3)+alu0);
  float val1 = (alu2?*(data2+alu3):0.0f);
  float val2 = (alu2?*(data2+(alu3+1)):0.0f);
  float val3 = (alu2?*(data2+(alu3+2)):0.0f);
  float val4 = (alu2?*(data2+(alu3+3)):0.0f);
  *((__global float4*)((data0+((gidx0<<3)+alu0)))) = (float4)(val1,val2,val3,val4);
}
