package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// openRemote opens a file on a server, or the objects of a store as a folder.
func (r *reader) openRemote(ctx context.Context, address string) (tiers.Input, error) {
	client, err := remote.New(r.Servers)
	if err != nil {
		return tiers.Input{}, err
	}
	if !strings.HasPrefix(strings.ToLower(address), "s3://") {
		defer client.Close()
		return r.openDownload(ctx, func(ctx context.Context) (*remote.File, error) {
			return client.OpenURL(ctx, address)
		})
	}

	bucket, key, err := client.OpenBucket(address)
	if err != nil {
		client.Close()
		return tiers.Input{}, err
	}
	in, err := r.openBucket(ctx, &objects{bucket: bucket, name: address, close: client.Close}, key)
	if err != nil || in.Dir == nil {
		client.Close()
	}
	return in, err
}

// openBucket opens the object with the given key, or the objects below the key.
func (r *reader) openBucket(ctx context.Context, o *objects, key string) (tiers.Input, error) {
	isFolder := key == "" || strings.HasSuffix(key, "/") || strings.ContainsAny(key, "*?[{")
	if !isFolder {
		in, err := r.openDownload(ctx, func(ctx context.Context) (*remote.File, error) {
			return o.bucket.Open(ctx, key)
		})
		if !remote.IsMissing(err) {
			return in, err
		}
		key += "/"
	}

	if err := o.list(ctx, key); err != nil {
		return tiers.Input{}, err
	}
	var sum int64
	for _, size := range o.sizes {
		sum += size
	}
	if sum > r.MaxUnpacked {
		return tiers.Input{}, fmt.Errorf("%w: the objects have %s together: give a longer key, or raise --max-unpacked",
			bigtext.ErrTooLarge, quantity.IBytes(sum))
	}

	// The objects are read as long as the folder is used. Until the folder is open, ctx also ends
	// reads.
	o.ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, o.cancel)
	defer stop()
	dir, err := bigtext.Select(o, bigtext.Selection{Skip: r.skipMember, Load: r.loadMember}, o.free)
	if err != nil {
		return tiers.Input{}, errors.Join(err, o.free())
	}
	r.surveyed = mostSurveyedRemote
	return r.finishFolder(ctx, dir, "no object has a key that begins like this", describeLeftOut(o.leftOut))
}

// openDownload copies a file from a server and opens the copy.
func (r *reader) openDownload(
	ctx context.Context, open func(context.Context) (*remote.File, error),
) (tiers.Input, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	file, err := open(ctx)
	if err != nil {
		return tiers.Input{}, err
	}
	defer file.Close()
	if file.Size > r.MaxUnpacked {
		return tiers.Input{}, fmt.Errorf("%w: it has %s: raise --max-unpacked",
			bigtext.ErrTooLarge, quantity.IBytes(file.Size))
	}

	counted := &countedReader{Reader: file}
	stop := r.tellWhile(func() string {
		said := fmt.Sprintf("downloading %s: %s", file.Name, quantity.IBytes(counted.got.Load()))
		if file.Size > 0 {
			said += " of " + quantity.IBytes(file.Size)
		}
		return said
	})
	text, err := bigtext.Spooled(ctx, file.Name, counted, r.MaxUnpacked, func() error { return nil })
	stop()
	if errors.Is(err, bigtext.ErrTooLarge) {
		err = fmt.Errorf("%w: raise --max-unpacked", err)
	}
	if err != nil {
		return tiers.Input{}, err
	}
	return r.openText(ctx, text)
}

// countedReader counts bytes for progress messages.
type countedReader struct {
	io.Reader
	got atomic.Int64
}

// Read implements io.Reader.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.got.Add(int64(n))
	return n, err
}

// objects presents some objects of a bucket as a folder. It implements [bigtext.DirSource].
type objects struct {
	bucket  *remote.Bucket
	name    string
	keys    map[string]string // by name in the folder
	sizes   map[string]int64
	leftOut map[string]int
	close   func()

	ctx    context.Context //nolint:containedctx // the context of reads, which begin when a file is used
	cancel context.CancelFunc
}

// list finds the objects with keys that begin with a prefix or match a pattern.
func (o *objects) list(ctx context.Context, key string) error {
	prefix, isMatch := key, func(string) bool { return true }
	if at := strings.IndexAny(key, "*?[{"); at >= 0 {
		if !doublestar.ValidatePattern(key) {
			return fmt.Errorf("cannot use the pattern %q: it is malformed", key)
		}
		prefix, isMatch = key[:at], func(found string) bool { return doublestar.MatchUnvalidated(key, found) }
	}
	found, err := o.bucket.List(ctx, prefix)
	if err != nil {
		return err
	}

	base := prefix[:strings.LastIndexByte(prefix, '/')+1]
	o.keys, o.sizes, o.leftOut = map[string]string{}, map[string]int64{}, map[string]int{}
	for _, object := range found {
		if !isMatch(object.Key) {
			continue
		}
		name, ok := cleanName(strings.TrimPrefix(object.Key, base))
		if _, known := o.keys[name]; !ok || known {
			o.leftOut["objects with an unsafe name"]++
			continue
		}
		o.keys[name], o.sizes[name] = object.Key, object.Size
	}
	return nil
}

// Name returns the address.
func (o *objects) Name() string { return o.name }

// Names returns the names of the objects in the folder.
func (o *objects) Names() []string {
	names := make([]string, 0, len(o.keys))
	for name := range o.keys {
		names = append(names, name)
	}
	return names
}

// Size returns the size of an object.
func (o *objects) Size(name string) (int64, error) {
	size, ok := o.sizes[name]
	if !ok {
		return 0, fmt.Errorf("cannot find %q: %w", name, fs.ErrNotExist)
	}
	return size, nil
}

// Open begins reading an object.
func (o *objects) Open(name string) (fs.File, error) {
	key, ok := o.keys[name]
	if !ok {
		return nil, fmt.Errorf("cannot open %q: %w", name, fs.ErrNotExist)
	}
	file, err := o.bucket.Open(o.ctx, key)
	if err != nil {
		return nil, fmt.Errorf("cannot download %q: %w", name, err)
	}
	return &memberFile{ReadCloser: file, name: name, left: o.sizes[name], size: o.sizes[name]}, nil
}

func (o *objects) free() error {
	o.cancel()
	o.close()
	return nil
}
