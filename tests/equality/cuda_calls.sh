#!/bin/sh
# Tests must be able to make every CUDA call of the library fail.
# usage: cuda_calls.sh NM LIBRARY CALL...
set -eu
nm=$1
library=$2
shift 2
calls=$("$nm" -u "$library" 2>/dev/null | sed -n 's/^ *U \(_*cuda[A-Z][A-Za-z_]*\)$/\1/p' | sort -u)
[ -n "$calls" ] || { echo "no calls of CUDA's in $library" && exit 1; }
bad=0
for call in $calls; do
    case $call in
    cudaGetErrorString | cudaGetErrorName) continue ;;
    __cudaRegister* | __cudaUnregister* | __cudaPushCallConfiguration | __cudaPopCallConfiguration | __cudaGetKernel) continue ;;
    esac
    case " $* " in
    *" $call "*) ;;
    *) echo "$call is called, and no test makes it fail: see failing_cuda.c" && bad=1 ;;
    esac
done
exit $bad
