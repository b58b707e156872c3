// Package powercut tests crawls on a failing disk: power cuts, damaged files, and operations that
// return EIO. The tests run the decorum command on a FUSE file system (package fusefs) over a disk
// in memory whose power can be cut (package disk).
//
//	cd tools/powercut && go test . -cuts 200 -damages 200 -faults 20
//
// A failed test logs the flags with the seed that repeats the random choices of the disk. The
// moment of a cut depends on the running process, so a repeated test cuts the power at about the
// same moment only.
//
// Begin reading at machine (main_test.go), then TestPowerCuts. The package has no code outside of
// tests.
package powercut
