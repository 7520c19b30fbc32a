#include "textflag.h"

// The kernel calls a handler with the signal in R0 and its siginfo_t in R1; si_code
// is the third int of that. It is positive when the kernel sent the signal, zero or
// negative when a process did (SI_USER, SI_QUEUE, SI_TKILL).
TEXT ·filter(SB),NOSPLIT|NOFRAME,$0-0
	MOVW 8(R1), R2
	CMPW $0, R2
	BGT  kernel
	MOVD ·runtimeHandler(SB), R2
	B    (R2)
kernel:
	RET

DATA ·filterPC+0(SB)/8, $·filter(SB)
GLOBL ·filterPC(SB), NOPTR, $8
