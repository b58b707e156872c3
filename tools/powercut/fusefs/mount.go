// Package fusefs shows a disk.Disk to processes, by FUSE.
//
// Writes reach the disk at once: the kernel keeps pages for reading and for mappings
// only. So what a process has written when it is killed is what Disk.Cut decides about.
// To show what is there after a cut, unmount and mount again.
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

// A Mount shows a disk.
type Mount struct {
	server *fuse.Server
	root   *node
}

// New mounts a disk on a directory, which needs /dev/fuse and the right to mount.
func New(dir string, d *disk.Disk) (*Mount, error) {
	options := &fs.Options{MountOptions: fuse.MountOptions{
		DirectMount: true, FsName: "powercut", Name: "powercut", MaxWrite: 1 << 17,
	}}
	root := &node{disk: d, n: d.Root()}
	server, err := fs.Mount(dir, root, options)
	if err != nil {
		return nil, err
	}
	return &Mount{server, root}, nil
}

// Unmount ends the mount. It fails while a process uses it.
func (m *Mount) Unmount() error { return m.server.Unmount() }

// Forget has the kernel forget what it has cached of a file, so that what processes read
// of it next, in a mapping too, is read from the disk.
func (m *Mount) Forget(path string) error {
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

// A node is a file or a directory in the mount.
type node struct {
	fs.Inode
	disk *disk.Disk
	n    *disk.Node
}

// A handle is an open file. Its name is the one that it was opened by.
type handle struct {
	n    *disk.Node
	name string
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

// errno returns an error of the disk as the kernel wants it.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e
	}
	return syscall.EIO
}

func (n *node) attributes(of *disk.Node, a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink = of.Number, syscall.S_IFREG|0o600, 1
	if of.Dir {
		a.Mode = syscall.S_IFDIR | 0o700
		return
	}
	a.Size = uint64(n.disk.Size(of))
	a.Blocks = (a.Size + 511) / 512
}

// child returns the inode of a node of the disk.
func (n *node) child(ctx context.Context, of *disk.Node, out *fuse.EntryOut) *fs.Inode {
	n.attributes(of, &out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, n: of}, fs.StableAttr{Mode: out.Mode & syscall.S_IFMT, Ino: of.Number})
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	of := n.disk.Lookup(n.n, name)
	if of == nil {
		return nil, syscall.ENOENT
	}
	return n.child(ctx, of, out), 0
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var entries []fuse.DirEntry
	names := n.disk.Names(n.n)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var a fuse.Attr
		n.attributes(names[name], &a)
		entries = append(entries, fuse.DirEntry{Name: name, Ino: a.Ino, Mode: a.Mode})
	}
	return fs.NewListDirStream(entries), 0
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.attributes(n.n, &out.Attr)
	return 0
}

func (n *node) Setattr(_ context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if err := n.disk.Truncate(n.n, n.name(h), int64(size)); err != nil {
			return errno(err)
		}
	}
	n.attributes(n.n, &out.Attr)
	return 0
}

// name returns by which name a file is known: faults are injected by name.
func (n *node) name(h fs.FileHandle) string {
	if h, ok := h.(*handle); ok {
		return h.name
	}
	name, _ := n.Parent()
	return name
}

func (n *node) Create(
	ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	of, err := n.disk.Create(n.n, name, false)
	if err != nil {
		return nil, nil, 0, errno(err)
	}
	return n.child(ctx, of, out), &handle{n: of, name: name}, 0, 0
}

func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	of, err := n.disk.Create(n.n, name, true)
	if err != nil {
		return nil, errno(err)
	}
	return n.child(ctx, of, out), 0
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.Remove(n.n, name))
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.Remove(n.n, name))
}

func (n *node) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	parent, ok := to.(*node)
	if !ok || flags&^1 != 0 { // RENAME_NOREPLACE is 1
		return syscall.EINVAL
	}
	if flags == 1 && n.disk.Lookup(parent.n, newName) != nil {
		return syscall.EEXIST
	}
	return errno(n.disk.Rename(n.n, name, parent.n, newName))
}

func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	name, _ := n.Parent()
	return &handle{n: n.n, name: name}, 0, 0
}

func (n *node) Read(_ context.Context, h fs.FileHandle, b []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	count, err := n.disk.Read(n.n, n.name(h), b, offset)
	return fuse.ReadResultData(b[:count]), errno(err)
}

func (n *node) Write(_ context.Context, h fs.FileHandle, b []byte, offset int64) (uint32, syscall.Errno) {
	if err := n.disk.Write(n.n, n.name(h), b, offset); err != nil {
		return 0, errno(err)
	}
	return uint32(len(b)), 0
}

func (n *node) Fsync(_ context.Context, h fs.FileHandle, _ uint32) syscall.Errno {
	return errno(n.disk.Sync(n.n, n.name(h)))
}

// Statfs says that there is room: decorum pauses on a full disk.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.NameLen = disk.BlockSize, 255
	out.Blocks, out.Bfree, out.Bavail = 1<<30, 1<<30, 1<<30
	return 0
}
