#include <metal_stdlib>
using namespace metal;
kernel void E_4_3_2(device float* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 4 */
  int gidx1 = gid.y; /* 3 */
  int lidx0 = lid.x; /* 2 */
  float val0 = *(data1+((gidx1<<3)+(lidx0<<2)+gidx0));
  *(data0+((gidx0*6)+(gidx1<<1)+lidx0)) = val0;
}
