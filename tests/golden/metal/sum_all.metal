#include <metal_stdlib>
using namespace metal;
kernel void r_16_256_16(device float* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  float acc0 = 0.0f;
  threadgroup float buf0[16];
  int lidx0 = lid.x; /* 16 */
  float acc1 = 0.0f;
  int alu0 = (lidx0<<8);
  for (int ridx1 = 0; ridx1 < 256; ridx1++) {
    float val0 = *(data1+(alu0+ridx1));
    acc1 = (acc1+val0);
  }
  *(buf0+lidx0) = acc1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int ridx0 = 0; ridx0 < 16; ridx0++) {
    float val1 = *(buf0+ridx0);
    acc0 = (acc0+val1);
  }
  if ((lidx0==0)) {
    *(data0+0) = acc0;
  }
}
