typedef float float8 __attribute__((vector_size(32)));
typedef float float8u __attribute__((vector_size(32),aligned(4)));
static inline float8 float8_of(float x) { return (float8){x,x,x,x,x,x,x,x}; }
typedef int int8 __attribute__((vector_size(32)));
typedef unsigned int uint8 __attribute__((vector_size(32)));
static inline uint8 uint8_of(unsigned int x) { return (uint8){x,x,x,x,x,x,x,x}; }
typedef signed char bool8 __attribute__((vector_size(8)));
typedef unsigned short ushort8 __attribute__((vector_size(16)));
typedef unsigned short ushort8u __attribute__((vector_size(16),aligned(2)));
static inline uint8 where_uint8(bool8 x, uint8 y, uint8 z) { int8 mask = __builtin_convertvector(x, int8); return (uint8)((mask & (int8)y) | (~mask & (int8)z)); }
void E_8(void** args, char* scratch, long long begin, long long end) {
  unsigned short* data0 = args[0];
  float* data1 = args[1];
  float8 val0 = *((float8u*)((data1+0)));
  uint8 alu0 = ((uint8)(val0*float8_of(3.0f)));
  uint8 alu1 = (alu0&uint8_of(2147483647u));
  uint8 alu2 = where_uint8(__builtin_convertvector((alu1<uint8_of(947912704u)),bool8),(((uint8)(((float8)alu1)+float8_of(0.5f)))+uint8_of(3238002688u)),(((((alu1>>uint8_of(13u))&uint8_of(1u))+alu1)+uint8_of(3355447295u))>>uint8_of(13u)));
  *((ushort8u*)((data0+0))) = __builtin_convertvector((where_uint8(__builtin_convertvector((uint8_of(2139095040u)<alu1),bool8),uint8_of(32256u),where_uint8(__builtin_convertvector((alu2<uint8_of(31744u)),bool8),alu2,uint8_of(31744u)))|((alu0>>uint8_of(31u))<<uint8_of(15u))),ushort8);
}
