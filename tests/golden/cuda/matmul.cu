#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(2) r_4_2_8_4(float* data0, float* data1, float* data2) {
  int gidx0 = blockIdx.x; /* 4 */
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (gidx0<<3);
  int alu1 = (lidx0<<2);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int ridx0 = 0; ridx0 < 8; ridx0++) {
    float val0 = *(data1+(alu0+ridx0));
    float4 val1 = *((float4*)((data2+(alu1+(ridx0<<3)))));
    acc0 = fma(val0,val1.x,acc0);
    acc1 = fma(val0,val1.y,acc1);
    acc2 = fma(val0,val1.z,acc2);
    acc3 = fma(val0,val1.w,acc3);
  }
  *((float4*)((data0+(alu0+alu1)))) = make_float4(acc0,acc1,acc2,acc3);
}
