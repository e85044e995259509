typedef signed char bool8 __attribute__((vector_size(8)));
typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void E_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  bool8 alu0 = (bool8){-(0),-(0),-(1),-(1),-(1),-(1),-(1),-(0)};
  float8 val0 = (float8){(alu0[0]?(data1+-2)[0]:0.0f),(alu0[1]?(data1+-2)[1]:0.0f),(alu0[2]?(data1+-2)[2]:0.0f),(alu0[3]?(data1+-2)[3]:0.0f),(alu0[4]?(data1+-2)[4]:0.0f),(alu0[5]?(data1+-2)[5]:0.0f),(alu0[6]?(data1+-2)[6]:0.0f),(alu0[7]?(data1+-2)[7]:0.0f)};
  *((float8u*)((data0+0))) = (val0+float8_of(1.0f));
}
