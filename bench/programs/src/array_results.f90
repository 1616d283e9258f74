! Array-valued functions, the way much scientific Fortran is written: gfortran puts each result
! that it cannot prove to be small into memory from malloc and frees it after the statement.
! 38 MB a result: above glibc's highest dynamic mmap threshold (32 MiB), so each result is mapped,
! faulted in, and unmapped again.
program array_results
  implicit none
  integer, parameter :: n = 5000000, steps = 40
  real(8), allocatable :: field(:)
  integer :: step
  allocate(field(n))
  field = 1.0d0
  do step = 1, steps
    field = smoothed(field) + 0.5d0 * relaxed(field, 0.01d0 * step)
    field = field / maxval(field)
  end do
  print '(f12.6)', sum(field) / n
contains
  function smoothed(a) result(r)
    real(8), intent(in) :: a(:)
    real(8) :: r(size(a))
    integer :: i, m
    m = size(a)
    r(1) = a(1)
    r(m) = a(m)
    do i = 2, m - 1
      r(i) = 0.25d0 * a(i - 1) + 0.5d0 * a(i) + 0.25d0 * a(i + 1)
    end do
  end function
  function relaxed(a, rate) result(r)
    real(8), intent(in) :: a(:), rate
    real(8) :: r(size(a))
    r = a * (1.0d0 - rate) + rate
  end function
end program
