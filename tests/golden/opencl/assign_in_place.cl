__kernel void E_2_4(__global float* data0) {
  int lidx0 = get_local_id(0); /* 2 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((__global float4*)((data0+alu0)));
  *((__global float4*)((data0+alu0))) = (float4)(((val0.x*0.5f)+1.0f),((val0.y*0.5f)+1.0f),((val0.z*0.5f)+1.0f),((val0.w*0.5f)+1.0f));
}
