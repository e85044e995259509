#include <metal_stdlib>
using namespace metal;
kernel void E_2_4(device float* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((device float4*)((data1+alu0)));
  float alu1 = (precise::exp2((((val0.x*2.0f)+1.0f)*1.442695f))-val0.x);
  float alu2 = (precise::exp2((((val0.y*2.0f)+1.0f)*1.442695f))-val0.y);
  float alu3 = (precise::exp2((((val0.z*2.0f)+1.0f)*1.442695f))-val0.z);
  float alu4 = (precise::exp2((((val0.w*2.0f)+1.0f)*1.442695f))-val0.w);
  *((device float4*)((data0+alu0))) = float4((0.0f>alu1?0.0f:alu1),(0.0f>alu2?0.0f:alu2),(0.0f>alu3?0.0f:alu3),(0.0f>alu4?0.0f:alu4));
}
