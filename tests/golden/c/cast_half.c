typedef unsigned short ushort8 __attribute__((vector_size(16)));
typedef unsigned short ushort8u __attribute__((vector_size(16),aligned(2)));
typedef unsigned int uint8 __attribute__((vector_size(32)));
static inline uint8 uint8_of(unsigned int x) { return (uint8){x,x,x,x,x,x,x,x}; }
typedef int int8 __attribute__((vector_size(32)));
typedef signed char bool8 __attribute__((vector_size(8)));
typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
static inline uint8 where_uint8(bool8 x, uint8 y, uint8 z) { int8 mask = __builtin_convertvector(x, int8); return (uint8)((mask & (int8)y) | (~mask & (int8)z)); }
void E_8(void** args, char* scratch, long long begin, long long end) {
  float* data0 = args[0];
  unsigned short* data1 = args[1];
  ushort8 val0 = *((ushort8u*)((data1+0)));
  uint8 alu0 = __builtin_convertvector(val0,uint8);
  uint8 alu1 = (alu0&uint8_of(32767u));
  uint8 alu2 = (alu1<<uint8_of(13u));
  *((float8u*)((data0+0))) = (((float8)(where_uint8(__builtin_convertvector((alu1<uint8_of(31744u)),bool8),((uint8)(((float8)alu2)*float8_of(5.192297e+33f))),(alu2|uint8_of(2139095040u)))|((alu0>>uint8_of(15u))<<uint8_of(31u))))*float8_of(3.0f));
}
