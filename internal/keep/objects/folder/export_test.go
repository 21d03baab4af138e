package folder

import "os"

// SetVersion changes the version in the header of a file.
func SetVersion(path, digest string, version byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[8] = version
	sum := checksum(data[8:28], digest)
	data[28], data[29], data[30], data[31] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	return os.WriteFile(path, data, 0o600)
}
