#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
#include <cuda_fp16.h>
struct __align__(8) half4 { half x, y, z, w; };
extern "C" __global__ void __launch_bounds__(2) E_2_4(float* data0, half* data1) {
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (lidx0<<2);
  half4 val0 = *((half4*)((data1+alu0)));
  *((float4*)((data0+alu0))) = make_float4((((float)val0.x)*3.0f),(((float)val0.y)*3.0f),(((float)val0.z)*3.0f),(((float)val0.w)*3.0f));
}
