__kernel void E_3_2_4(__global float* data0, __global int* data1, __global uchar* data2, __global float* data3) {
  int gidx0 = get_group_id(0); /* 3 */
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  float4 val1 = *((__global float4*)((data3+((((9u<as_uint(alu1))?0:alu1)<<3)+alu0))));
  *((__global float4*)((data0+((gidx0<<3)+alu0)))) = (float4)(val1.x,val1.y,val1.z,val1.w);
}
