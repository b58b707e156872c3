package memlimit

import "golang.org/x/sys/unix"

// machineMemory returns the bytes of the machine's memory, 0 if the system does not report them.
func machineMemory(string) int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
