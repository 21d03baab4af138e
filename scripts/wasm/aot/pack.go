package main

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/machine/aot"
)

// machines are the architectures, with the relocations that do not depend on the load address of
// the code.
var machines = map[elf.Machine]struct {
	name     string
	relative map[uint32]bool
}{
	elf.EM_X86_64: {"amd64", map[uint32]bool{
		uint32(elf.R_X86_64_PC32): true, uint32(elf.R_X86_64_PLT32): true,
		uint32(elf.R_X86_64_PC64): true,
	}},
	// The last relocations concern the low 12 bits, which are those of the offset, since code
	// begins at a page boundary.
	elf.EM_AARCH64: {"arm64", map[uint32]bool{
		uint32(elf.R_AARCH64_CALL26): true, uint32(elf.R_AARCH64_JUMP26): true,
		uint32(elf.R_AARCH64_CONDBR19): true, uint32(elf.R_AARCH64_TSTBR14): true,
		uint32(elf.R_AARCH64_PREL32): true, uint32(elf.R_AARCH64_PREL64): true,
		uint32(elf.R_AARCH64_ADR_PREL_LO21): true, uint32(elf.R_AARCH64_LD_PREL_LO19): true,
		uint32(elf.R_AARCH64_ADR_PREL_PG_HI21): true, uint32(elf.R_AARCH64_ADD_ABS_LO12_NC): true,
		uint32(elf.R_AARCH64_LDST8_ABS_LO12_NC): true, uint32(elf.R_AARCH64_LDST16_ABS_LO12_NC): true,
		uint32(elf.R_AARCH64_LDST32_ABS_LO12_NC): true, uint32(elf.R_AARCH64_LDST64_ABS_LO12_NC): true,
		uint32(elf.R_AARCH64_LDST128_ABS_LO12_NC): true,
	}},
}

// packFile reads a linked program and the output folder of rewrite, and writes a blob.
func packFile(program, folder, to string) error {
	text, err := os.ReadFile(filepath.Join(folder, "interface.json"))
	if err != nil {
		return err
	}
	var about face
	if err := json.Unmarshal(text, &about); err != nil {
		return err
	}

	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()

	blob, err := pack(f, about)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}

	return os.WriteFile(to, blob, 0o644)
}

// pack makes a blob from a program that was linked with its relocations.
func pack(f *elf.File, about face) ([]byte, error) {
	machine, ok := machines[f.Machine]
	if !ok {
		return nil, fmt.Errorf("nobody runs code for %s", f.Machine)
	}
	if err := checkRelocations(f, machine.relative); err != nil {
		return nil, err
	}

	h := aot.Header{Machine: machine.name, Imports: about.Imports, Globals: map[string]uint64{}}
	code, err := readSegments(f, &h)
	if err != nil {
		return nil, err
	}
	if err := findSymbols(f, &h, code, about); err != nil {
		return nil, err
	}

	return aot.Encode(h, code)
}

// checkRelocations checks that the code can run at any address.
func checkRelocations(f *elf.File, relative map[uint32]bool) error {
	checked := 0
	for _, s := range f.Sections {
		if s.Type == elf.SHT_REL || s.Type == elf.SHT_DYNAMIC || s.Name == ".got" && s.Size > 0 {
			return fmt.Errorf("it has a section %s", s.Name)
		}
		if s.Type != elf.SHT_RELA || //nolint:misspell // ELF's name
			f.Sections[s.Info].Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return err
		}
		for ; len(data) >= 24; data = data[24:] {
			kind := uint32(binary.LittleEndian.Uint64(data[8:]))
			if !relative[kind] {
				return fmt.Errorf("%s has a relocation of type %d, which depends on the address", s.Name, kind)
			}
			checked++
		}
	}
	if checked == 0 {
		return errors.New("it was linked without --emit-relocs")
	}

	return nil
}

const page = 4096

// readSegments returns the memory of the program, which has no writable data.
func readSegments(f *elf.File, h *aot.Header) ([]byte, error) {
	var code []byte
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Flags&elf.PF_W != 0 || p.Filesz != p.Memsz || p.Vaddr%page != p.Off%page {
			return nil, fmt.Errorf("a segment at %#x is %s, %d of %d bytes", p.Vaddr, p.Flags, p.Filesz, p.Memsz)
		}
		start, end := p.Vaddr/page*page, (p.Vaddr+p.Memsz+page-1)/page*page
		if start < uint64(len(code)) || end > 1<<30 {
			return nil, fmt.Errorf("a segment at %#x overlaps another one or lies too far away", p.Vaddr)
		}
		code = append(code, make([]byte, end-uint64(len(code)))...)
		if _, err := p.ReadAt(code[p.Vaddr:p.Vaddr+p.Filesz], 0); err != nil {
			return nil, err
		}
		h.Segments = append(h.Segments, aot.Segment{
			Offset: start, Size: end - start, IsExecutable: p.Flags&elf.PF_X != 0,
		})
	}
	h.Size = uint64(len(code))
	return code, nil
}

// findSymbols fills in the addresses.
func findSymbols(f *elf.File, h *aot.Header, code []byte, about face) error {
	list, err := f.Symbols()
	if err != nil {
		return err
	}

	symbols := map[string]elf.Symbol{}
	for _, s := range list {
		symbols[s.Name] = s
	}
	find := func(name string) uint64 {
		s, ok := symbols[name]
		if !ok {
			err = errors.Join(err, fmt.Errorf("it has no symbol %s", name))
		}
		return s.Value
	}

	h.Begin, h.Resume, h.Start = find("aot_begin"), find("aot_resume"), find("aot_start")
	if _, isGuarded := symbols["aot_guarded"]; isGuarded {
		h.Trap = find("wasm_rt_trap")
	}
	for i, export := range about.Exports {
		address := find(fmt.Sprintf("aot_export_%d", i))
		h.Exports = append(h.Exports, aot.Export{Signature: export, Address: address})
	}

	at := find("aot_offsets")
	if err != nil {
		return err
	}
	count := 2 + len(about.GlobalNames)
	if at > uint64(len(code)) || uint64(len(code))-at < uint64(8*count) {
		return errors.New("its offsets lie outside")
	}

	offsets := make([]uint64, count)
	if _, err := binary.Decode(code[at:], binary.LittleEndian, offsets); err != nil {
		return err
	}
	h.Pages, h.Bytes = offsets[0], offsets[1]
	for i, name := range about.GlobalNames {
		h.Globals[name] = offsets[2+i]
	}

	return nil
}
