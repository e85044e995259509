#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
template <class To, class From> __device__ __forceinline__ To bitcast(From from) { return *reinterpret_cast<To*>(&from); }
extern "C" __global__ void __launch_bounds__(2) E_3_2_4(float* data0, int* data1, unsigned char* data2, float* data3) {
  int gidx0 = blockIdx.x; /* 3 */
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  float4 val1 = *((float4*)((data3+((((9u<bitcast<unsigned int>(int(alu1)))?0:alu1)<<3)+alu0))));
  *((float4*)((data0+((gidx0<<3)+alu0)))) = make_float4(val1.x,val1.y,val1.z,val1.w);
}
