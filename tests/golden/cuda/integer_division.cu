#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(1) E_4(int* data0, int* data1, int* data2) {
  int gidx0 = blockIdx.x; /* 4 */
  int val0 = *(data1+gidx0);
  int val1 = *(data2+gidx0);
  int alu0 = (val1==0?0:val1==-1?(-val0):(val0/val1));
  int alu1 = (val0-(alu0*val1));
  *(data0+gidx0) = (alu0-((int)(((alu1!=0)&((alu1<0)^(val1<0)))&(val1!=0))));
}
