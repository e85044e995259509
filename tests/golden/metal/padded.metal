#include <metal_stdlib>
using namespace metal;
kernel void E_2_4(device float* data0, device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 2 */
  int alu0 = (lidx0<<2);
  int alu1 = (lidx0*-4);
  float val0 = (((alu0<7)&(alu1<-1))?*(data1+(alu0+-2)):0.0f);
  float val1 = ((((1+alu0)<7)&((alu1-1)<-1))?*(data1+(alu0+-1)):0.0f);
  float val2 = ((((2+alu0)<7)&((alu1-2)<-1))?*(data1+alu0):0.0f);
  float val3 = ((((3+alu0)<7)&((alu1-3)<-1))?*(data1+(alu0+1)):0.0f);
  *((device float4*)((data0+alu0))) = float4((val0+1.0f),(val1+1.0f),(val2+1.0f),(val3+1.0f));
}
