#include <metal_stdlib>
using namespace metal;
kernel void E_2_4(device float* data0, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((device float4*)((data0+alu0)));
  *((device float4*)((data0+alu0))) = float4(((val0.x*0.5f)+1.0f),((val0.y*0.5f)+1.0f),((val0.z*0.5f)+1.0f),((val0.w*0.5f)+1.0f));
}
