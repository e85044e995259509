#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(2) E_3_2_4(float* data0, int* data1, float* data2) {
  int gidx0 = blockIdx.x; /* 3 */
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (lidx0<<2);
  int val0 = *(data1+gidx0);
  int alu1 = ((val0<0)?(val0+10):val0);
  bool alu2 = ((alu1<10)&((-alu1)<1));
  int alu3 = ((alu1<<3)+alu0);
  float val1 = (alu2?*(data2+alu3):0.0f);
  float val2 = (alu2?*(data2+(alu3+1)):0.0f);
  float val3 = (alu2?*(data2+(alu3+2)):0.0f);
  float val4 = (alu2?*(data2+(alu3+3)):0.0f);
  *((float4*)((data0+((gidx0<<3)+alu0)))) = make_float4(val1,val2,val3,val4);
}
