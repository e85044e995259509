#include <metal_stdlib>
using namespace metal;
kernel void r_4_2_8_4(device float* data0, device float* data1, device float* data2, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 4 */
  int lidx0 = lid.x; /* 2 */
  int alu0 = (gidx0<<3);
  int alu1 = (lidx0<<2);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int ridx0 = 0; ridx0 < 8; ridx0++) {
    float val0 = *(data1+(alu0+ridx0));
    float4 val1 = *((device float4*)((data2+(alu1+(ridx0<<3)))));
    acc0 = fma(val0,val1.x,acc0);
    acc1 = fma(val0,val1.y,acc1);
    acc2 = fma(val0,val1.z,acc2);
    acc3 = fma(val0,val1.w,acc3);
  }
  *((device float4*)((data0+(alu0+alu1)))) = float4(acc0,acc1,acc2,acc3);
}
