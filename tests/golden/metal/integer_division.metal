#include <metal_stdlib>
using namespace metal;
kernel void E_4(device int* data0, device int* data1, device int* data2, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 4 */
  int val0 = *(data1+gidx0);
  int val1 = *(data2+gidx0);
  int alu0 = (val1==0?0:val1==-1?(-val0):(val0/val1));
  int alu1 = (val0-(alu0*val1));
  *(data0+gidx0) = (alu0-((int)(((alu1!=0)&((alu1<0)^(val1<0)))&(val1!=0))));
}
