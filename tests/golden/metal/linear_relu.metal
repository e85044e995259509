#include <metal_stdlib>
using namespace metal;
kernel void r_4_8_8(device float* data0, device float* data1, device float* data2, device float* data3, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 4 */
  int gidx1 = gid.y; /* 8 */
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
