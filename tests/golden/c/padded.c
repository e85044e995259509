typedef long long long8 __attribute__((vector_size(64)));
static inline long8 long8_of(long long x) { return (long8){x,x,x,x,x,x,x,x}; }
typedef signed char bool8 __attribute__((vector_size(8)));
typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
void E_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  float* data1 = args[1];
  long8 alu0 = (long8){0ll,1ll,2ll,3ll,4ll,5ll,6ll,7ll};
  bool8 alu1 = (__builtin_convertvector((alu0<long8_of(7ll)),bool8)&__builtin_convertvector(((-alu0)<long8_of(-1ll)),bool8));
  float8 val0 = (float8){(alu1[0]?(data1+-2)[0]:0.0f),(alu1[1]?(data1+-2)[1]:0.0f),(alu1[2]?(data1+-2)[2]:0.0f),(alu1[3]?(data1+-2)[3]:0.0f),(alu1[4]?(data1+-2)[4]:0.0f),(alu1[5]?(data1+-2)[5]:0.0f),(alu1[6]?(data1+-2)[6]:0.0f),(alu1[7]?(data1+-2)[7]:0.0f)};
  *((float8u*)((data0+0))) = (val0+float8_of(1.0f));
}
