#include <metal_stdlib>
using namespace metal;
kernel void E_3_2_4(device float* data0, device int* data1, device uchar* data2, device float* data3, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x; /* 3 */
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  float4 val1 = *((device float4*)((data3+((((9u<as_type<uint>(alu1))?0:alu1)<<3)+alu0))));
  *((device float4*)((data0+((gidx0<<3)+alu0)))) = float4(val1.x,val1.y,val1.z,val1.w);
}
