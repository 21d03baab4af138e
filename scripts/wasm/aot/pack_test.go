package main

import (
	"debug/elf"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/aot"
)

// TestPackRefuses checks that pack refuses programs that cannot be guests.
func TestPackRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		file elf.File
	}{
		{"another architecture", elf.File{FileHeader: elf.FileHeader{Machine: elf.EM_RISCV}}},
		{"no relocations", elf.File{FileHeader: elf.FileHeader{Machine: elf.EM_X86_64}}},
		{"a dynamic program", elf.File{
			FileHeader: elf.FileHeader{Machine: elf.EM_X86_64},
			Sections:   []*elf.Section{{SectionHeader: elf.SectionHeader{Type: elf.SHT_DYNAMIC}}},
		}},
		{"addresses of addresses", elf.File{
			FileHeader: elf.FileHeader{Machine: elf.EM_X86_64},
			Sections:   []*elf.Section{{SectionHeader: elf.SectionHeader{Name: ".got", Size: 8}}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := pack(&c.file, face{}); err == nil {
				t.Errorf("pack takes %s", c.name)
			}
		})
	}
}

// TestSegmentsAreNeverWritable checks that readSegments refuses segments that would break the wall.
func TestSegmentsAreNeverWritable(t *testing.T) {
	for name, p := range map[string]elf.ProgHeader{
		"a writable segment":        {Flags: elf.PF_R | elf.PF_W, Filesz: 8, Memsz: 8},
		"memory that is not stored": {Flags: elf.PF_R, Filesz: 8, Memsz: 16},
		"an address far away":       {Flags: elf.PF_R, Vaddr: 1 << 40, Filesz: 8, Memsz: 8},
	} {
		t.Run(name, func(t *testing.T) {
			p.Type = elf.PT_LOAD
			f := &elf.File{Progs: []*elf.Prog{{ProgHeader: p}}}
			if _, err := readSegments(f, &aot.Header{}); err == nil {
				t.Errorf("readSegments takes %s", name)
			}
		})
	}
}
