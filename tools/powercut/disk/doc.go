// Package disk models what a disk holds after a power cut.
//
// A Disk is a file system in memory. Each file has two contents: the current one, which processes
// see, and the stable one, which is certainly on the disk. SyncNode makes the current content
// stable. CutPower decides by chance what becomes of everything that is not stable yet.
//
// # What a cut may do
//
// The model is ext4 with data=writeback, which promises little:
//
//   - Of the blocks of 4 KiB that were written since the last sync of their file, any subset is on
//     the disk. A block is written whole or not at all.
//   - The size of a file is any that the file has had since its last sync, independently of its
//     blocks: a missing block below the size has zeros, or its earlier content.
//   - Directory operations (create, remove, rename, make a directory) go through a journal: the
//     unstable ones are lost from some point on, in all directories at once. A sync of a file or of
//     a directory writes the journal. With PerDirJournal, each directory has a journal of its own,
//     which only a sync of that directory writes, as POSIX allows.
//
// A failed sync leaves its blocks visible to processes but never on the disk: a later successful
// sync does not write them, as on Linux.
//
// Begin reading at Disk, then CutPower. The package starts no goroutine. Disk.mu is its only lock.
package disk
