__kernel void E_4_4(__global float* data0, __global float* data1, __global float* data2) {
  int lidx0 = get_local_id(0); /* 4 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((__global float4*)((data1+alu0)));
  float4 val1 = *((__global float4*)((data2+alu0)));
  *((__global float4*)((data0+alu0))) = (float4)((val0.x+val1.x),(val0.y+val1.y),(val0.z+val1.z),(val0.w+val1.w));
}
