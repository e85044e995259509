#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(2) E_2_4(float* data0) {
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((float4*)((data0+alu0)));
  *((float4*)((data0+alu0))) = make_float4(((val0.x*0.5f)+1.0f),((val0.y*0.5f)+1.0f),((val0.z*0.5f)+1.0f),((val0.w*0.5f)+1.0f));
}
