void E_4(void** args, char* scratch, long long begin, long long end) {
  int* data0 = args[0];
  int* data1 = args[1];
  int* data2 = args[2];
  for (long long ridx0 = 0; ridx0 < 4; ridx0++) {
    int val0 = *(data1+ridx0);
    int val1 = *(data2+ridx0);
    int alu0 = (val1==0?0:val1==-1?(-val0):(val0/val1));
    int alu1 = (val0-(alu0*val1));
    *(data0+ridx0) = (alu0-((int)(((alu1!=0)&((alu1<0)^(val1<0)))&(val1!=0))));
  }
}
