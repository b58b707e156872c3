// Package fusefs mounts a disk.Disk with FUSE, so that processes can use it.
//
// Writes reach the Disk at once: the kernel caches pages only for reads and mappings. So when a
// process is killed, Disk.CutPower decides about everything that the process has written. After a
// cut, unmount the disk and mount it again.
//
// Begin reading at MountDisk. go-fuse starts the goroutines of a mount, and Unmount ends them.
package fusefs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/decorum-crawler/decorum/tools/powercut/disk"
)

// A Mount is a mounted disk.
type Mount struct {
	server *fuse.Server
	root   *mountedNode
}

// MountDisk mounts a disk at dir. It requires /dev/fuse and the right to mount.
func MountDisk(dir string, d *disk.Disk) (*Mount, error) {
	options := &fs.Options{MountOptions: fuse.MountOptions{
		DirectMount: true, FsName: "powercut", Name: "powercut", MaxWrite: 1 << 17,
	}}
	root := &mountedNode{disk: d, diskNode: d.Root()}
	server, err := fs.Mount(dir, root, options)
	if err != nil {
		return nil, err
	}
	return &Mount{server, root}, nil
}

// Unmount ends the mount. It returns an error while a process uses the mount.
func (m *Mount) Unmount() error { return m.server.Unmount() }

// DropFileCache drops the kernel's cache of the file at path, so that the next reads of it,
// including those through a mapping, come from the disk.
func (m *Mount) DropFileCache(path string) error {
	inode := m.root.EmbeddedInode()
	for name := range strings.SplitSeq(path, "/") {
		if inode = inode.GetChild(name); inode == nil {
			return syscall.ENOENT
		}
	}
	if e := inode.NotifyContent(0, 0); e != 0 {
		return e
	}
	return nil
}

// A mountedNode is a file or a directory in the mount.
type mountedNode struct {
	fs.Inode
	disk     *disk.Disk
	diskNode *disk.Node
}

// A fileHandle is an open file.
type fileHandle struct {
	diskNode *disk.Node
	name     string // name with which the file was opened
}

var (
	_ fs.NodeLookuper  = (*mountedNode)(nil)
	_ fs.NodeReaddirer = (*mountedNode)(nil)
	_ fs.NodeGetattrer = (*mountedNode)(nil)
	_ fs.NodeSetattrer = (*mountedNode)(nil)
	_ fs.NodeCreater   = (*mountedNode)(nil)
	_ fs.NodeMkdirer   = (*mountedNode)(nil)
	_ fs.NodeUnlinker  = (*mountedNode)(nil)
	_ fs.NodeRmdirer   = (*mountedNode)(nil)
	_ fs.NodeRenamer   = (*mountedNode)(nil)
	_ fs.NodeOpener    = (*mountedNode)(nil)
	_ fs.NodeReader    = (*mountedNode)(nil)
	_ fs.NodeWriter    = (*mountedNode)(nil)
	_ fs.NodeFsyncer   = (*mountedNode)(nil)
	_ fs.NodeStatfser  = (*mountedNode)(nil)
)

// errnoOf converts an error of the disk for the kernel. An unknown error is EIO.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e
	}
	return syscall.EIO
}

// fillAttributes sets the attributes of a file or directory in a.
func (n *mountedNode) fillAttributes(file *disk.Node, a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink = file.Inode, syscall.S_IFREG|0o600, 1
	if file.IsDir {
		a.Mode = syscall.S_IFDIR | 0o700
		return
	}
	a.Size = uint64(n.disk.FileSize(file))
	a.Blocks = (a.Size + 511) / 512
}

// newChildInode returns a new inode for a node of the disk.
func (n *mountedNode) newChildInode(ctx context.Context, file *disk.Node, out *fuse.EntryOut) *fs.Inode {
	n.fillAttributes(file, &out.Attr)
	return n.NewInode(ctx, &mountedNode{disk: n.disk, diskNode: file},
		fs.StableAttr{Mode: out.Mode & syscall.S_IFMT, Ino: file.Inode})
}

// Lookup implements fs.NodeLookuper.
func (n *mountedNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	file := n.disk.Lookup(n.diskNode, name)
	if file == nil {
		return nil, syscall.ENOENT
	}
	return n.newChildInode(ctx, file, out), 0
}

// Readdir implements fs.NodeReaddirer.
func (n *mountedNode) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var entries []fuse.DirEntry
	names := n.disk.ReadDir(n.diskNode)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var a fuse.Attr
		n.fillAttributes(names[name], &a)
		entries = append(entries, fuse.DirEntry{Name: name, Ino: a.Ino, Mode: a.Mode})
	}
	return fs.NewListDirStream(entries), 0
}

// Getattr implements fs.NodeGetattrer.
func (n *mountedNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.fillAttributes(n.diskNode, &out.Attr)
	return 0
}

// Setattr implements fs.NodeSetattrer. Only a change of the size has an effect.
func (n *mountedNode) Setattr(_ context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if err := n.disk.Truncate(n.diskNode, n.nameOf(h), int64(size)); err != nil {
			return errnoOf(err)
		}
	}
	n.fillAttributes(n.diskNode, &out.Attr)
	return 0
}

// nameOf returns the name of a file, which selects injected faults.
func (n *mountedNode) nameOf(h fs.FileHandle) string {
	if h, ok := h.(*fileHandle); ok {
		return h.name
	}
	name, _ := n.Parent()
	return name
}

// Create implements fs.NodeCreater.
func (n *mountedNode) Create(
	ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	file, err := n.disk.CreateNode(n.diskNode, name, false)
	if err != nil {
		return nil, nil, 0, errnoOf(err)
	}
	return n.newChildInode(ctx, file, out), &fileHandle{diskNode: file, name: name}, 0, 0
}

// Mkdir implements fs.NodeMkdirer.
func (n *mountedNode) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	dir, err := n.disk.CreateNode(n.diskNode, name, true)
	if err != nil {
		return nil, errnoOf(err)
	}
	return n.newChildInode(ctx, dir, out), 0
}

// Unlink implements fs.NodeUnlinker.
func (n *mountedNode) Unlink(_ context.Context, name string) syscall.Errno {
	return errnoOf(n.disk.Remove(n.diskNode, name))
}

// Rmdir implements fs.NodeRmdirer.
func (n *mountedNode) Rmdir(_ context.Context, name string) syscall.Errno {
	return errnoOf(n.disk.Remove(n.diskNode, name))
}

// Rename implements fs.NodeRenamer. The only flag that it supports is RENAME_NOREPLACE.
func (n *mountedNode) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string,
	flags uint32) syscall.Errno {
	parent, ok := to.(*mountedNode)
	if !ok || flags&^1 != 0 { // RENAME_NOREPLACE is 1
		return syscall.EINVAL
	}
	if flags == 1 && n.disk.Lookup(parent.diskNode, newName) != nil {
		return syscall.EEXIST
	}
	return errnoOf(n.disk.Rename(n.diskNode, name, parent.diskNode, newName))
}

// Open implements fs.NodeOpener.
func (n *mountedNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	name, _ := n.Parent()
	return &fileHandle{diskNode: n.diskNode, name: name}, 0, 0
}

// Read implements fs.NodeReader.
func (n *mountedNode) Read(_ context.Context, h fs.FileHandle, b []byte,
	offset int64) (fuse.ReadResult, syscall.Errno) {
	count, err := n.disk.Read(n.diskNode, n.nameOf(h), b, offset)
	return fuse.ReadResultData(b[:count]), errnoOf(err)
}

// Write implements fs.NodeWriter.
func (n *mountedNode) Write(_ context.Context, h fs.FileHandle, b []byte, offset int64) (uint32, syscall.Errno) {
	if err := n.disk.Write(n.diskNode, n.nameOf(h), b, offset); err != nil {
		return 0, errnoOf(err)
	}
	return uint32(len(b)), 0
}

// Fsync implements fs.NodeFsyncer.
func (n *mountedNode) Fsync(_ context.Context, h fs.FileHandle, _ uint32) syscall.Errno {
	return errnoOf(n.disk.SyncNode(n.diskNode, n.nameOf(h)))
}

// Statfs reports free space, because decorum pauses when a disk is full.
func (n *mountedNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.NameLen = disk.BlockSize, 255
	out.Blocks, out.Bfree, out.Bavail = 1<<30, 1<<30, 1<<30
	return 0
}
