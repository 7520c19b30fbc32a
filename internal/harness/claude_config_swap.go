package harness

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// swap exchanges two files in one step. Where the file system cannot, a is moved over
// b and swapped is false.
func swap(a, b string) (swapped bool, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if !cannot(err) {
		return err == nil, err
	}
	return false, os.Rename(a, b)
}

// renameNew moves a file to a place where there is none; it fails with fs.ErrExist
// when there is one.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !cannot(err) {
		return err
	}
	return os.Link(from, to)
}

// cannot reports whether the kernel or the file system does not know the flag.
func cannot(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}
