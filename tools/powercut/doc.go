// Package powercut tests what a crawl makes of a disk that fails: power cuts, damaged
// files, and operations that return EIO. The tests run the decorum command on a file
// system (fusefs) that shows a disk whose power can be cut (disk).
//
//	cd tools/powercut && go test . -cuts 200 -damages 200 -faults 20
//
// Each failure names the seed that repeats the choices of the disk. The moment of a cut
// is that of a process, and is not repeated exactly.
package powercut
