#include <metal_stdlib>
using namespace metal;
kernel void r_2_32_4(device float* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 2 */
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  int alu0 = (lidx0<<7);
  for (int ridx0 = 0; ridx0 < 32; ridx0++) {
    int alu1 = (alu0+ridx0);
    float val0 = *(data1+alu1);
    float val1 = *(data1+(alu1+32));
    float val2 = *(data1+(alu1+64));
    float val3 = *(data1+(alu1+96));
    acc0 = (acc0+val0);
    acc1 = (acc1+val1);
    acc2 = (acc2+val2);
    acc3 = (acc3+val3);
  }
  *((device float4*)((data0+(lidx0<<2)))) = float4(acc0,acc1,acc2,acc3);
}
