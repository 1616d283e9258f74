:- initialization(main, main).
main([What]) :- run(What, Total), writeln(Total).
run(churn, 15) :- !, forall(between(1, 15, _), (numlist(1, 300000, L), msort(L, S), length(S, _))).
run(touch, N) :- !, findall(S, (between(1, 60000, I), length(L, 60), atomic_list_concat([x, I], A), S = f(A, L)), All), length(All, N).
run(_, T) :- count(6000000, 0, T).
count(0, T, T) :- !.
count(N, A, T) :- B is (A + N) /\ 16777215, M is N - 1, count(M, B, T).
