#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(2) E_4_3_2(float* data0, float* data1) {
  int gidx0 = blockIdx.x; /* 4 */
  int gidx1 = blockIdx.y; /* 3 */
  int lidx0 = threadIdx.x; /* 2 */
  float val0 = *(data1+((gidx1<<3)+(lidx0<<2)+gidx0));
  *(data0+((gidx0*6)+(gidx1<<1)+lidx0)) = val0;
}
