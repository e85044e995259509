#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(16) r_16_256_16(float* data0, float* data1) {
  float acc0 = 0.0f;
  __shared__ float buf0[16];
  int lidx0 = threadIdx.x; /* 16 */
  float acc1 = 0.0f;
  int alu0 = (lidx0<<8);
  for (int ridx1 = 0; ridx1 < 256; ridx1++) {
    float val0 = *(data1+(alu0+ridx1));
    acc1 = (acc1+val0);
  }
  *(buf0+lidx0) = acc1;
  __syncthreads();
  for (int ridx0 = 0; ridx0 < 16; ridx0++) {
    float val1 = *(buf0+ridx0);
    acc0 = (acc0+val1);
  }
  if ((lidx0==0)) {
    *(data0+0) = acc0;
  }
}
