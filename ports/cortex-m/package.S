/* The package, where the linker puts it: used in place, never copied. PACKAGE_FILE is the .bantam file. */
    .section .package, "a", %progbits
    .balign 64
    .global package_begin
    .global package_end
package_begin:
    .incbin PACKAGE_FILE
package_end:
