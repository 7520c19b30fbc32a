#include "textflag.h"

// The kernel calls a handler with the signal in DI and its siginfo_t in SI; si_code
// is the third int of that. It is positive when the kernel sent the signal, zero or
// negative when a process did (SI_USER, SI_QUEUE, SI_TKILL).
TEXT ·filter(SB),NOSPLIT|NOFRAME,$0-0
	CMPL 8(SI), $0
	JGT  kernel
	MOVQ ·runtimeHandler(SB), AX
	JMP  AX
kernel:
	RET

DATA ·filterPC+0(SB)/8, $·filter(SB)
GLOBL ·filterPC(SB), NOPTR, $8
