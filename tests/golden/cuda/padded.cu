#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(2) E_2_4(float* data0, float* data1) {
  int lidx0 = threadIdx.x; /* 2 */
  int alu0 = (lidx0<<2);
  int alu1 = (lidx0*-4);
  float val0 = (((alu0<7)&(alu1<-1))?*(data1+(alu0+-2)):0.0f);
  float val1 = ((((1+alu0)<7)&((alu1-1)<-1))?*(data1+(alu0+-1)):0.0f);
  float val2 = ((((2+alu0)<7)&((alu1-2)<-1))?*(data1+alu0):0.0f);
  float val3 = ((((3+alu0)<7)&((alu1-3)<-1))?*(data1+(alu0+1)):0.0f);
  *((float4*)((data0+alu0))) = make_float4((val0+1.0f),(val1+1.0f),(val2+1.0f),(val3+1.0f));
}
