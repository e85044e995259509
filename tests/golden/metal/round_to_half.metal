#include <metal_stdlib>
using namespace metal;
kernel void E_2_4(device half* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((device float4*)((data1+alu0)));
  *((device half4*)((data0+alu0))) = half4(((half)(val0.x*3.0f)),((half)(val0.y*3.0f)),((half)(val0.z*3.0f)),((half)(val0.w*3.0f)));
}
