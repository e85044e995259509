#include <metal_stdlib>
using namespace metal;
kernel void E_3_2_4(device float* data0, device int* data1, device float* data2, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 3 */
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  bool alu2 = ((alu1<10)&((-alu1)<1));
  int alu3 = ((alu1<<3)+alu0);
  float val1 = (alu2?*(data2+alu3):0.0f);
  float val2 = (alu2?*(data2+(alu3+1)):0.0f);
  float val3 = (alu2?*(data2+(alu3+2)):0.0f);
  float val4 = (alu2?*(data2+(alu3+3)):0.0f);
  *((device float4*)((data0+((gidx0<<3)+alu0)))) = float4(val1,val2,val3,val4);
}
